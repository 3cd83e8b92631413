"""Programs of quantised tensors and modules, and what they must give."""
