package imports

import (
	"fmt"
	"slices"
	"strings"
)

// rule binds the packages that match path.
type rule struct {
	path string
	// only lists what their files, tests aside, may import; nil means anything.
	only []string
	// never takes from only again.
	never []string
	// importedBy lists who may import them, tests aside; nil means anyone.
	importedBy []string
	why        string
}

// pkg is a package of this module: its import paths, each with a file that has it.
type pkg struct {
	name    string
	imports map[string]string
}

// tree is the packages of this module by their path relative to it.
type tree map[string]pkg

// check returns a sentence for each import that breaks a rule.
func check(t tree, rules []rule) []string {
	var violations []string
	for path, p := range t {
		for imported, file := range p.imports {
			for _, r := range rules {
				if matches(r.path, path) && r.only != nil &&
					(!matchesAny(r.only, imported) || matchesAny(r.never, imported)) {
					violations = append(violations, fmt.Sprintf("%s imports %s, which %s may not: %s", file, imported, r.path, r.why))
				}
				if r.importedBy != nil && matches(r.path, imported) &&
					!matches(r.path, path) && !matchesAny(r.importedBy, path) {
					violations = append(violations, fmt.Sprintf("%s imports %s, which only %s may: %s",
						file, imported, strings.Join(r.importedBy, " and "), r.why))
				}
			}
		}
	}
	slices.Sort(violations)
	return violations
}

// vanished returns a sentence for each path of ours in the table that no package
// of the tree matches: a rule over nothing would hold forever.
func vanished(t tree, rules []rule) []string {
	var missing []string
	for _, r := range rules {
		for _, pattern := range slices.Concat([]string{r.path}, r.only, r.never, r.importedBy) {
			if !ours(pattern) {
				continue
			}
			found := false
			for path := range t {
				found = found || matches(pattern, path)
			}
			if !found {
				missing = append(missing, fmt.Sprintf("the rule for %s names %s, which does not exist: move the rule with the package", r.path, pattern))
			}
		}
	}
	return missing
}

// withoutRow returns a sentence for each package of core that no rule names
// itself: what a new one may import is to be decided, not inherited.
func withoutRow(t tree, rules []rule) []string {
	var missing []string
	for path := range t {
		if !matches("core/...", path) {
			continue
		}
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.path == path || r.path == path+"/..." }) {
			missing = append(missing, fmt.Sprintf("%s has no row of its own in the table: say what it may import, and why", path))
		}
	}
	slices.Sort(missing)
	return missing
}

// checkNames returns a sentence for each package whose path or name holds one of the words.
func checkNames(t tree, words []string) []string {
	var violations []string
	for path, p := range t {
		for _, word := range append(strings.Split(path, "/"), p.name) {
			if slices.Contains(words, strings.TrimSuffix(word, "_test")) {
				violations = append(violations, fmt.Sprintf("package %s: the name %s does not say what it is for", path, word))
				break
			}
		}
	}
	slices.Sort(violations)
	return violations
}

// ours tells whether a pattern names packages of this module: it is neither the
// standard library nor a path that starts with a host name.
func ours(pattern string) bool {
	first, _, _ := strings.Cut(pattern, "/")
	return slices.Contains(ourRoots, first)
}

// ourRoots are the first elements of this module's package paths.
var ourRoots = []string{"api", "cmd", "config", "core", "hack", "internal", "test"}

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && !ours(imported)
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, path string) bool {
	if pattern == "std" {
		return standard(path)
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}
