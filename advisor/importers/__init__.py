"""What comes from other tools and goes to them: TuneD, saptune, sysctl files, Ansible, cloud-init and others."""
