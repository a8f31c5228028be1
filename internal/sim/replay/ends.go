package replay

// ends is a heap of what runs, by when it ends; of those that end together the one that arrived
// first is first.
type ends []*job

func (e ends) Len() int { return len(e) }

func (e ends) Less(i, k int) bool {
	if e[i].ends != e[k].ends {
		return e[i].ends < e[k].ends
	}
	return e[i].seq < e[k].seq
}

func (e ends) Swap(i, k int) {
	e[i], e[k] = e[k], e[i]
	e[i].index, e[k].index = i, k
}

// Push implements heap.Interface.
func (e *ends) Push(x any) {
	j := x.(*job)
	j.index = len(*e)
	*e = append(*e, j)
}

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	old := *e
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return j
}
