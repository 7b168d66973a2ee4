"""Profiles carried out on many hosts in waves, taken up again, verified and put back."""
