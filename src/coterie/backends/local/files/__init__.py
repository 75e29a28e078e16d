"""Files of tasks on this machine: safe reading, removal beside the driver, and a budget for logs."""
