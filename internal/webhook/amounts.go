package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// longestAmount is more than anybody writes for a quantity.
const longestAmount = 64

// looksAbsurd finds what such an amount would look like, wherever it stands.
var looksAbsurd = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3}|[0-9.]{64}`)

// amountError is what is wrong with an amount that must not be read.
type amountError struct{ field string }

func (e *amountError) Error() string {
	return fmt.Sprintf("%s is an amount with an exponent of three digits or more, or longer than %d characters: write how much is needed, such as 40Gi", e.field, longestAmount)
}

// checkAmounts refuses quantities that take minutes to read or to compare: 9e-99999999 is a legal one,
// and is rounded digit by digit. What comes from the API server has none, as it reads pods itself and
// holds GPUWorkloads to a pattern; whoever else reaches the port may send anything.
func checkAmounts(raw []byte) error {
	if !looksAbsurd.Match(raw) {
		return nil
	}
	// Rare: a commit's hash in a label may look like one, so that it matters where it stands.
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	if field := absurd(object, "", false); field != "" {
		return &amountError{field: field}
	}
	return nil
}

// absurd returns the path of an amount that must not be read, "" if there is none. amounts says that
// strings and numbers here are quantities.
func absurd(value any, path string, amounts bool) string {
	switch v := value.(type) {
	case map[string]any:
		// In order, so that the same is said each time.
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := absurd(v[key], path+"."+key, amounts || isAmounts(key)); found != "" {
				return found
			}
		}
	case []any:
		for i, inner := range v {
			if found := absurd(inner, fmt.Sprintf("%s[%d]", path, i), amounts); found != "" {
				return found
			}
		}
	case string:
		if amounts && isAbsurd(v) {
			return strings.TrimPrefix(path, ".")
		}
	case json.Number:
		if amounts && isAbsurd(v.String()) {
			return strings.TrimPrefix(path, ".")
		}
	}
	return ""
}

func isAbsurd(text string) bool {
	return len(text) > longestAmount || looksAbsurd.MatchString(text)
}

// isAmounts tells whether what is under a key of a pod or of a GPUWorkload is quantities. Upper and
// lower case are the same to Go's reader.
func isAmounts(key string) bool {
	return slices.ContainsFunc([]string{
		"limits", "requests", "overhead", "sizeLimit", "divisor", "minMemory", "capacity", "allocatable", "allocatedResources",
	}, func(k string) bool { return strings.EqualFold(k, key) })
}
