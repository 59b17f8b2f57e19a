// Package basic holds the small commands: those that print what they are told (echo, printf, seq, yes), decide (test,
// expr, true), calculate (factor), tell of the process and its machine (env, id, date, uname), and run others (env,
// timeout, nohup and their like).
//
// What is told of the machine is the workspace's: the host's name, users and processors are not asked for.
package basic
