"""Views of workflows: their JSON, the reasons why they wait, and their logs."""
