"""Grove's own objects, in the form that its API has today."""
