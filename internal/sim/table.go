package sim

func (s Style) table(r *Result) string { return r.Reason + "\n" }
