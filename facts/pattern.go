package facts

import (
	"path"
	"strings"
)

// Match reports whether a name fits a pattern as rules have them: each element between
// slashes as [path.Match] has it, where ** stands for any number of elements. A pattern that
// is malformed fits nothing.
func Match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && !strings.Contains(name, "/") {
		return matchElement(pattern, name)
	}
	return matchElements(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

const anyElements = "**"

// matchElements comes back to the last ** alone: what an earlier one could take more of,
// that one takes.
func matchElements(pattern, name []string) bool {
	p, n, back, taken := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == anyElements:
			back, taken = p, n
			p++
		case p < len(pattern) && matchElement(pattern[p], name[n]):
			p, n = p+1, n+1
		case back >= 0:
			taken++
			p, n = back+1, taken
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == anyElements {
		p++
	}
	return p == len(pattern)
}

func matchElement(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// WellFormed reports whether a pattern can fit anything: its elements are patterns of
// [path.Match], and ** is a whole element.
func WellFormed(pattern string) bool {
	for element := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(element, ""); err != nil || element != anyElements && strings.Contains(element, anyElements) {
			return false
		}
	}
	return true
}
