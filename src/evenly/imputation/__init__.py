"""The imputer, from the encoded table to the filled one."""
