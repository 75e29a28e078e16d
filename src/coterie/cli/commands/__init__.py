"""The commands of coterie, one module each."""
