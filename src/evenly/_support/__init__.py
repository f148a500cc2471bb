"""What everybody may use: errors and warnings, optional imports, files written all or nothing."""
