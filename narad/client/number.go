package client

import (
	"strconv"

	"github.com/mahati-host/mahati/narad"
)

// number reads a sequence leniently: what is no whole number from 0 to
// narad.MaxInteger is 0, which no fact has.
func number(value narad.Raw) int64 { return parseNumber(string(value)) }

func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > narad.MaxInteger {
		return 0
	}
	return n
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
