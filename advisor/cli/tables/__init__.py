"""What is known of the command line without typer."""
