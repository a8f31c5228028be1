package placement

func (p *planner) planSeveral() Decision { return Decision{Undecided: true} }
