"""livesign: signs of life for chat bots and AI agents."""
