// Package trace reads what the simulator replays: the nodes of a cluster, the pods of a packing
// experiment and the jobs of a trace, as CSV files with named columns. It reads the published
// traces as they are published, and everybody's own in the same form.
//
// A file is read row by row and never kept whole unless its rows come in no order, so that a
// trace of millions of jobs is replayed in the memory of those that wait or run. What is wrong is
// said with file, line and column. It does not judge whether a trace makes sense for a cluster:
// that is for whoever replays it.
package trace
