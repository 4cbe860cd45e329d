"""Programs compiled for TPUs and GPUs on machines that have none, and what that says of them."""
