"""Programs compiled for TPUs and GPUs on machines that have none, and what that tells about them."""
