"""What every thread has for itself: the stack of levels, counters of the fast path, switches."""
