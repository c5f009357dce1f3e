package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A setting is one line of the configuration file.
type setting struct {
	key   string
	doc   string
	value value
}

// variable is the name in the environment: MAHATI_STREAMS_HEARTBEAT.
func (s setting) variable() string {
	return "MAHATI_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// A value is one kind of setting, bound to its place in a Config. Its errors are
// rules, worded to follow a key and a value.
type value interface {
	reset()               // to the default
	setText(string) error // from the environment or a flag
	setTOML(any) error    // from the file
	literal() string      // the present value as TOML
}

// scalar is a value of one word. It is parsed from text; in the file it may also
// be written without quotes, if native says how.
type scalar[T any] struct {
	at     *T
	def    T
	parse  func(string) (T, error)
	native func(any) (T, bool, error) // ok: the file's type is its own
	format func(T) string
	rule   string // what to say of a wrong type
}

func (s scalar[T]) reset() { *s.at = s.def }

func (s scalar[T]) setText(text string) error {
	v, err := s.parse(text)
	if err != nil {
		return err
	}
	*s.at = v
	return nil
}

func (s scalar[T]) setTOML(raw any) error {
	if s.native != nil {
		v, ok, err := s.native(raw)
		if err != nil {
			return err
		}
		if ok {
			*s.at = v
			return nil
		}
	}
	text, ok := raw.(string)
	if !ok {
		return errors.New(s.rule)
	}
	return s.setText(text)
}

func (s scalar[T]) literal() string { return s.format(*s.at) }

// text is a string with a rule of its own; check nil takes anything.
func text(at *string, def string, check func(string) error) value {
	return scalar[string]{
		at: at, def: def, format: strconv.Quote, rule: "must be a string",
		parse: func(s string) (string, error) {
			if check == nil {
				return s, nil
			}
			return s, check(s)
		},
	}
}

// choice is one of a few words.
func choice(at *string, def string, words ...string) value {
	rule := fmt.Sprintf("must be one of %s", strings.Join(words, ", "))
	return text(at, def, func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New(rule)
		}
		return nil
	})
}

// boolean is true or false, in the file without quotes.
type boolean struct {
	at  *bool
	def bool
}

func (b boolean) reset()          { *b.at = b.def }
func (b boolean) literal() string { return strconv.FormatBool(*b.at) }

func (b boolean) setText(text string) error {
	switch text {
	case "true", "false":
		*b.at = text == "true"
		return nil
	}
	return errors.New("must be true or false")
}

func (b boolean) setTOML(raw any) error {
	v, ok := raw.(bool)
	if !ok {
		return errors.New("must be true or false, without quotes")
	}
	*b.at = v
	return nil
}

// number is a whole number within bounds, in the file without quotes.
type number struct {
	at              *int
	def             int
	lowest, highest int64
}

func (n number) reset()          { *n.at = n.def }
func (n number) literal() string { return strconv.Itoa(*n.at) }

func (n number) rule() error {
	return fmt.Errorf("must be a whole number from %d to %d", n.lowest, n.highest)
}

func (n number) setText(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return n.rule()
	}
	return n.setTOML(v)
}

func (n number) setTOML(raw any) error {
	v, ok := raw.(int64)
	if !ok || v < n.lowest || v > n.highest {
		return n.rule()
	}
	*n.at = int(v)
	return nil
}

// duration is a time such as "30s" or "1h30m", within bounds.
func duration(at *time.Duration, def, lowest, highest time.Duration) value {
	rule := fmt.Sprintf("must be a duration from %s to %s, such as %q", plain(lowest), plain(highest), plain(def))
	return scalar[time.Duration]{
		at: at, def: def, rule: rule,
		format: func(d time.Duration) string { return strconv.Quote(plain(d)) },
		parse: func(s string) (time.Duration, error) {
			d, err := time.ParseDuration(s)
			if err != nil || d < lowest || d > highest {
				return 0, errors.New(rule)
			}
			return d, nil
		},
	}
}

// plain leaves out the zeroes that String ends with: 10m, not 10m0s.
func plain(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes such as "512MiB", of at least lowest. A number
// without a unit is bytes.
func size(at *int64, def, lowest int64) value {
	rule := fmt.Sprintf("must be a size of at least %s, such as %q", formatSize(lowest), formatSize(def))
	check := func(n int64, ok bool) (int64, error) {
		if !ok || n < lowest {
			return 0, errors.New(rule)
		}
		return n, nil
	}
	return scalar[int64]{
		at: at, def: def, rule: rule,
		format: func(n int64) string { return strconv.Quote(formatSize(n)) },
		parse:  func(s string) (int64, error) { return check(parseSize(s)) },
		native: func(raw any) (int64, bool, error) {
			n, ok := raw.(int64)
			if !ok {
				return 0, false, nil
			}
			n, err := check(n, true)
			return n, true, err
		},
	}
}

var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize takes whole numbers only: 1.5GiB is 1536MiB.
func parseSize(s string) (int64, bool) {
	bytes := int64(1)
	for _, unit := range units {
		if rest, ok := strings.CutSuffix(s, unit.name); ok {
			s, bytes = strings.TrimSpace(rest), unit.bytes
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/bytes {
		return 0, false
	}
	return n * bytes, true
}

func formatSize(n int64) string {
	for _, unit := range units {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return "0B"
}

const maxListed = 1024

// list is strings, in the environment separated by commas.
type list struct {
	at    *[]string
	def   []string
	check func(string) error
}

func (l list) reset() { *l.at = slices.Clone(l.def) }

func (l list) setText(text string) error {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return l.set(items)
}

func (l list) setTOML(raw any) error {
	items, ok := stringsOf(raw)
	if !ok {
		return errors.New("must be a list of strings")
	}
	return l.set(items)
}

func (l list) set(items []string) error {
	if len(items) > maxListed {
		return fmt.Errorf("must have at most %d entries", maxListed)
	}
	for _, item := range items {
		if err := l.check(item); err != nil {
			return fmt.Errorf("%q %w", item, err)
		}
	}
	*l.at = items
	return nil
}

func (l list) literal() string { return quoteAll(*l.at) }

func quoteAll(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func stringsOf(raw any) ([]string, bool) {
	values, ok := raw.([]any)
	if !ok {
		return nil, false
	}
	items := make([]string, len(values))
	for i, v := range values {
		if items[i], ok = v.(string); !ok {
			return nil, false
		}
	}
	return items, true
}
