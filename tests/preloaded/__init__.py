"""Starts `stream-server`, and the workers of a test run, by forking an interpreter that has imported their code.

The suite starts hundreds of servers and commands. The imports take most of the processor time of each start. Here one
process for all workers of the suite imports the code once, and every start is a fork of it: a process of its own, with
its own pid, arguments, environment, files and signals.

The workers of xdist are forks too, of a process that has collected the tests once.

``parent``      the program that imports the server's code and forks
``worker``      the program that collects the tests and forks
``supervised``  in a supervisor: has its workers forked too
``stub``        what xdist starts as a worker; it has the worker forked
``identity``    the arguments that other processes see of a fork
``launcher``    asks those programs for processes; gives each one as an object like ``subprocess.Popen``
"""
