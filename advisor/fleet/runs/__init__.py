"""Profiles applied on many hosts in waves: resumed, verified and rolled back."""
