"""The paper's experiments, end to end: its data sets, the sweep over them, its tables and figures."""
