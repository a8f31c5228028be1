package placement

// census counts the nodes of a view that fit, in a tree whose leaves are the nodes: the k-th
// of them is found in log n steps.
type census struct {
	count []int32
	size  int
}

// census returns the view's census, which the view keeps up to date from then on.
func (v *view) census() *census {
	if v.counted != nil {
		return v.counted
	}
	c := &census{size: 1}
	for c.size < len(v.fits) {
		c.size *= 2
	}
	c.count = make([]int32, 2*c.size)
	for i, fits := range v.fits {
		if fits > 0 {
			c.count[c.size+i] = 1
		}
	}
	for k := c.size - 1; k > 0; k-- {
		c.count[k] = c.count[2*k] + c.count[2*k+1]
	}
	v.counted = c
	return c
}

// update says whether the node at position i fits.
func (c *census) update(i int, fits bool) {
	now := int32(0)
	if fits {
		now = 1
	}
	if delta := now - c.count[c.size+i]; delta != 0 {
		for k := c.size + i; k > 0; k /= 2 {
			c.count[k] += delta
		}
	}
}

// total returns how many nodes fit.
func (c *census) total() int { return int(c.count[1]) }

// nth returns the position of the n-th node that fits, counted from zero.
func (c *census) nth(n int) int {
	k := 1
	for k < c.size {
		k *= 2
		if left := int(c.count[k]); n >= left {
			n -= left
			k++
		}
	}
	return k - c.size
}
