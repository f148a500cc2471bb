"""`python -m evenly`: the command `evenly`, where its script is not on the path."""

from evenly.cli import main

if __name__ == "__main__":
    main()
