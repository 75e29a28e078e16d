"""The folders of workflows on workspaces: recorded before they are made, and removed when a workflow is deleted.

records          the folders that workflows have, kept on disk
folder_removals  the removal of those of deleted workflows, each by a pod
"""
