"""Programs of nested tensors, and the checks that compare them with what they do to each part."""
