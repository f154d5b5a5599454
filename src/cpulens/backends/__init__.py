"""The namespace of torch.backends, with reasons."""
