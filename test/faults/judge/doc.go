// Command judge watches an API server from the start of a test to its end, and says afterwards
// what was wrong with the world at any revision in between: GPUs sold twice, gangs torn, Jobs
// doubled, workloads lost, strangers hurt.
//
// It sits on the API server itself, never behind the fault proxy, and shares no code with the
// product it judges, not even its types: what it needs of an object it reads out of the JSON.
// One etcd keeps all objects, so resourceVersions put every change of every kind into one order;
// in that order the history is replayed, and every oracle looks at the world after each change.
//
// It is driven by lines of JSON on its standard input, and answers each with one line:
//
//	{"do":"journal","path":"writes.jsonl"}   what a fault proxy recorded, for O5 and O7
//	{"do":"equal","what":"...","a":"...","b":"..."}   two answers that must be the same (O9)
//	{"do":"quiet","for":"30s"}   waits, and holds every write meanwhile against the product (O7)
//	{"do":"verdict"}   replays the history and ends; exit status 1 if anything was wrong
package main
