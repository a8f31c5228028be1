// Package slurm reads what Slurm's commands print: the jobs of sacct --parsable2 and the nodes of
// scontrol show node. What is wrong is said with file, line and column.
//
// It runs no command and asks no Slurm: its user does, with the rights that takes.
package slurm
