"""Tool names and their categories: every name that was decided, and how a table is read."""

from __future__ import annotations

import pytest

from actors.presence.policy import ToolCategory
from actors.presence.tools import NAME_CHARS_MAX, categorise, split_words

WEB = """
    WebFetch WebSearch web_search web_search_preview browser.search browser.open browser.find
    google_web_search web_fetch tavily_search_results_json duckduckgo_search serpapi wikipedia arxiv
    requests_get requests_post SerperDevTool ScrapeWebsiteTool mcp__browser__click
    mcp__playwright__browser_navigate mcp__playwright__browser_click mcp__puppeteer__puppeteer_navigate
    mcp__puppeteer__puppeteer_screenshot mcp__brave-search__brave_web_search mcp__fetch__fetch
    mcp__exa__web_search_exa mcp__firecrawl__firecrawl_scrape go_to_url search_google browse_interactive
    browser_action web-search web-fetch browser WEB_SEARCH Web-Fetch websearch webfetch web.fetch browse
    Browser BROWSER_EXEC exec_in_browser read_web_search_results fetch functions.fetch HTTPGet http_request
    openURL crawl_site
"""
CODING = """
    Bash BashOutput KillShell Glob Grep LS Read Edit MultiEdit Write NotebookRead NotebookEdit
    code_interpreter local_shell shell apply_patch exec_command write_stdin container.exec python read_file
    read_many_files write_file replace run_shell_command list_directory search_file_content glob python_repl
    Python_REPL terminal FileReadTool DirectoryReadTool CodeInterpreterTool execute_code
    mcp__filesystem__read_file mcp__filesystem__write_file mcp__filesystem__edit_file
    mcp__filesystem__list_directory mcp__github__search_code mcp__sqlite__read_query
    mcp__sqlite__write_query editblock whole_file udiff run_cmd str_replace_editor
    str_replace_based_edit_tool execute_bash execute_ipython_cell replace_in_file execute_command
    codebase_search run_terminal_cmd edit_file delete_file grep_search exec process read write edit
    session_status BASH my_exec_wrapper execute executor session-status session_status_get functions.exec
    mcp__box__ls apply-diff
"""
PLAIN = """
    Task TodoRead TodoWrite ExitPlanMode SlashCommand AskUserQuestion Skill ListMcpResources ReadMcpResource
    file_search computer_use_preview image_generation update_plan view_image dalle.text2im
    functions.get_weather transfer_to_agent save_memory Search Calculator sql_db_query sql_db_schema
    sql_db_list_tables sql_db_query_checker human llm-math pandas_dataframe retriever query_engine_tool
    DelegateWorkTool load_data mcp__github__create_issue mcp__github__create_pull_request
    mcp__memory__create_entities mcp__memory__read_graph mcp__slack__slack_post_message
    mcp__slack__slack_get_thread_replies mcp__postgres__query mcp__notion__API-post-page
    mcp__linear__create_issue mcp__sequential-thinking__sequentialthinking mcp__context7__resolve-library-id
    mcp__time__get_current_time mcp__sentry__get_issue mcp__stripe__create_payment_link
    click_element_by_index input_text scroll_down switch_tab extract_content done finish think use_mcp_tool
    ask_followup_question attempt_completion canvas nodes message cron gateway sessions_list sessions_send
    sessions_spawn memory_search memory_get image tts agents_list discord whatsapp_login unknown_tool
    preprocess post_processing spreadsheet_update thread_create credit_card_lookup rewrite_email typewriter
    readme_lookup bread_recipe executive_summary accredited_lookup write_email read_calendar edit_image
    read_messages process_refund webhook_list cobweb prefetch
"""


@pytest.mark.parametrize(
    ("name", "category"),
    [
        (name, category)
        for names, category in ((WEB, "web"), (CODING, "coding"), (PLAIN, "tool"))
        for name in names.split()
    ],
)
def test_every_name_that_was_decided(name: str, category: str) -> None:
    assert categorise(name) == category


@pytest.mark.parametrize("name", [None, "", "   ", "🔧", "ｅｘｅｃ", "exéc", "İEXEC", "__", "Ask question to coworker"])
def test_no_name_and_odd_names_are_plain_tools(name: str | None) -> None:
    assert categorise(name) == "tool"


@pytest.mark.parametrize(("name", "category"), [(" process ", "coding"), ("\tRead\n", "coding"), ("web search", "web")])
def test_blanks_do_not_matter(name: str, category: str) -> None:
    assert categorise(name) == category


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mcp__web-Tools__HTTPGet2", ("mcp", "web", "tools", "http", "get", "2")),
        ("WebSearch", ("web", "search")),
        ("text2im", ("text", "2", "im")),
        ("a.b/c:d e", ("a", "b", "c", "d", "e")),
        ("BASH", ("bash",)),
        ("", ()),
    ],
)
def test_names_are_split_at_separators_case_changes_and_digits(name: str, words: tuple[str, ...]) -> None:
    assert split_words(name) == words


OWN = (
    ToolCategory("deploy", tokens=("ship it", "rollout"), names=("Go",)),
    ToolCategory("web", names=("bash",), tokens=("rollout",)),
)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("go", "deploy"),
        ("mcp__ops__go", "deploy"),
        ("ops.go", "deploy"),
        ("go_on", "tool"),
        ("please_ship_it_now", "deploy"),
        ("ship_or_not_it", "tool"),
        ("ShipIt", "deploy"),
        ("rollout_status", "deploy"),
        ("Bash", "web"),
        ("read_file", "tool"),
    ],
)
def test_a_table_of_the_users_own(name: str, category: str) -> None:
    assert categorise(name, OWN) == category


def test_exact_names_come_before_the_tokens_of_all_categories() -> None:
    table = (ToolCategory("first", tokens=("read",)), ToolCategory("second", names=("read_mail",)))
    assert categorise("ReadMail", table) == "second"
    assert categorise("read_mails", table) == "first"


def test_a_name_as_written_comes_before_one_of_the_same_words() -> None:
    table = (ToolCategory("first", names=("web search",)), ToolCategory("second", names=("WEB_SEARCH",)))
    assert categorise("web_search", table) == "second"
    assert categorise("web search", table) == "first"
    assert categorise("WebSearch", table) == "first"


def test_an_empty_table_knows_plain_tools_only() -> None:
    assert categorise("bash", ()) == "tool"


def test_a_very_long_name_is_cut() -> None:
    assert categorise("x" * NAME_CHARS_MAX + "_bash") == "tool"
    assert categorise("x" * (NAME_CHARS_MAX - 5) + "_bash") == "coding"
