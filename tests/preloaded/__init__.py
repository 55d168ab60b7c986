"""Starts `stream-server` by forking an interpreter that has imported its code already.

The suite starts hundreds of servers and commands. The imports take most of the processor time of each start. Here one
process for each worker of the suite imports the code once, and every start is a fork of it: a process of its own, with
its own pid, environment, files and signals.

``parent``    the program that imports the code and forks
``launcher``  asks that program for processes; gives each one as an object like ``subprocess.Popen``
"""
