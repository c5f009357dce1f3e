package narad

import (
	"math"
	"strconv"
)

// Usage is what a run used (specification §7.5). Partial figures are allowed; a
// nil figure is an unknown one, which is not zero (R42).
type Usage struct {
	PromptTokens     *int64
	CompletionTokens *int64
	TotalTokens      *int64
	// ElapsedMs is in milliseconds.
	ElapsedMs *float64
	// Extra holds further figures, which the specification leaves to the host.
	Extra []Member
}

// usage visits an optional usage object. A client leaves out figures that are no
// numbers; a host must not write them.
func usage(c *coder, name string, p **Usage) {
	if c.writes(name) {
		if c.describes(name, formUsage, optional) || *p == nil || (*p).empty() {
			return
		}
		inner := c.object(name, (*p).Extra)
		(*p).fields(inner)
		c.close(inner)
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	inner, ok := c.inside(pointer(c.path, name), value)
	if !ok {
		c.unusable(name, "an object is required", optional)
		return
	}
	u := new(Usage)
	u.fields(inner)
	if inner.err != nil {
		c.err = inner.err
		return
	}
	if !u.empty() {
		*p = u
	}
}

func (u *Usage) fields(c *coder) {
	c.index2("promptTokens", &u.PromptTokens)
	c.index2("completionTokens", &u.CompletionTokens)
	c.index2("totalTokens", &u.TotalTokens)
	c.number("elapsedMs", &u.ElapsedMs)
	if c.mode == decoding {
		u.Extra = c.rest()
	}
}

func (u *Usage) empty() bool {
	return u.PromptTokens == nil && u.CompletionTokens == nil && u.TotalTokens == nil &&
		u.ElapsedMs == nil && len(u.Extra) == 0
}

// index2 visits an optional token count.
func (c *coder) index2(name string, p **int64) {
	if c.writes(name) {
		c.index(name, p)
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	if i, ok := integer(value); ok && i >= 0 {
		*p = &i
		return
	}
	c.unusable(name, "an integer of at least 0 is required", optional)
}

// number visits an optional number.
func (c *coder) number(name string, p **float64) {
	const rule = "a finite number is required"
	if c.writes(name) {
		if c.describes(name, `{"type":"number"}`, optional) {
			return
		}
		if *p == nil {
			return
		}
		if math.IsNaN(**p) || math.IsInf(**p, 0) {
			c.fail(name, rule)
			return
		}
		c.put(name)
		c.out = strconv.AppendFloat(c.out, **p, 'f', -1, 64)
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		c.unusable(name, rule, optional)
		return
	}
	*p = &f
}

// MarshalJSON writes the figures that are known.
func (u Usage) MarshalJSON() ([]byte, error) {
	c := &coder{mode: encoding, code: CodeInvalidRecord, writing: new(writing)}
	inner := c.brace("", u.Extra)
	u.fields(inner)
	if c.close(inner); c.err != nil {
		return nil, c.err
	}
	return c.out, nil
}

// UnmarshalJSON reads figures leniently: those that are no numbers are left out.
func (u *Usage) UnmarshalJSON(data []byte) error {
	in, ok := membersOf(Raw(data).sound())
	if !ok {
		return &Error{CodeInvalidRecord, "", "usage is an object"}
	}
	*u = Usage{}
	u.fields(&coder{code: CodeInvalidRecord, in: in})
	return nil
}
