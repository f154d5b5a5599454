"""Catch what native code prints, in this process or in a child."""
