package archtest

import (
	"strings"
	"testing"
)

func TestRuleEveryPackageHasRow(t *testing.T) {
	m := sources(t, "-- a/a.go --\npackage a\n-- b/b_test.go --\npackage b\n")
	expect(t, packagesWithoutRow(m, rows(t, "a | -\nwaits | -")), "b: has no row")
}

func TestRuleEveryRowHasPackage(t *testing.T) {
	m := sources(t, "-- a/a.go --\npackage a\n-- b/b_test.go --\npackage b\n")
	expect(t, rowsWithoutPackage(m, rows(t, "a | -\nb | -\n\ngone | a")), "imports.txt:4: gone is no package")
}

func TestRuleImports(t *testing.T) {
	m := sources(t, `
-- core/core.go --
package core
import "example.com/m/outer"
import _ "example.com/m"
-- core/core_test.go --
package core
import "example.com/m/core/coretest"
-- core/outer_test.go --
package core_test
import "example.com/m/outer"
import "example.com/m/core"
-- core/coretest/suite.go --
package coretest
import "example.com/m/core"
-- outer/outer.go --
package outer
import "example.com/m/core"
import "example.com/m/core/coretest"
-- outer/tagged.go --
//go:build never
package outer
import "example.com/m/lost"
-- lost/lost.go --
package lost
import "example.com/m/outer"
`)
	table := rows(t, "core | -\ncore/coretest test | core\nouter | core")
	expect(t, importsOutsideTable(m, table),
		"core/core.go:2: core may not import outer, only: nothing of ours",
		"core/core.go:3: core may not import ., only",
		"core/outer_test.go:2: a test of core may not import outer",
		"outer/outer.go:3: outer may not import core/coretest, only: core",
		"outer/tagged.go:3: outer may not import lost",
	)
}

func TestRuleThirdParty(t *testing.T) {
	m := sources(t, `
-- pub/pub.go --
package pub
import "encoding/json"
import "example.org/json"
import "example.org/json/jsontext"
import "example.org/jsonx"
import "example.org/cmp"
-- pub/pub_test.go --
package pub
import "example.org/cmp"
import "example.org/db"
-- core/core.go --
package core
import "example.org/db"
-- inner/inner.go --
package inner
import "example.org/db"
import "example.org/cmp/opts"
`)
	table := rows(t, "third-party: example.org/json\ntest-only: example.org/cmp\npub public | -\ncore pure | -\ninner | -")
	expect(t, thirdPartyOutsideTable(m, table),
		"pub/pub.go:5: pub uses the standard library and example.org/json alone, not example.org/jsonx",
		"pub/pub.go:6: example.org/cmp is for tests alone",
		"pub/pub_test.go:3: pub uses",
		"core/core.go:2: core uses",
		"inner/inner.go:3: example.org/cmp/opts is for tests alone",
	)
}

func TestRuleTesting(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
import "testing/fstest"
-- a/a_test.go --
package a
import "testing"
-- a/atest/atest.go --
package atest
import "testing"
`)
	expect(t, testingInProduction(m, rows(t, "a | -\na/atest test | a")), "a/a.go:2: ordinary code imports testing/fstest")
}

func TestRuleTestPackagesSayTheyAre(t *testing.T) {
	expect(t, testPackagesMisnamed(rows(t, "a/atest test | -\ntest/agents test | -\na/suite test | -\na/contest | -")),
		"imports.txt:3: a/suite", "imports.txt:4: a/contest")
}

func TestRulePurity(t *testing.T) {
	m := sources(t, `
-- core/core.go --
package core
import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	clock "time"
)
const layout = clock.RFC3339
var now = clock.Now
func f(at clock.Time) clock.Duration {
	go f(at)
	println(fmt.Sprint(url.URL{}))
	fmt.Println(rand.Int(), http.MethodGet, atomic.Int64{})
	clock.AfterFunc(0, nil)
	return clock.Since(at)
}
-- core/core_test.go --
package core
import "time"
var start = time.Now()
-- outer/outer.go --
package outer
import "os"
`)
	expect(t, impurities(m, rows(t, "core pure | -\nouter | -")),
		"core/core.go:4: imports math/rand/v2, which brings in randomness",
		"core/core.go:5: imports net/http, which brings in I/O",
		"core/core.go:7: imports sync/atomic, which brings in a lock",
		"core/core.go:11: uses time.Now",
		"core/core.go:13: starts a goroutine",
		"core/core.go:14: prints",
		"core/core.go:15: uses fmt.Println",
		"core/core.go:16: uses time.AfterFunc",
		"core/core.go:17: uses time.Since",
	)
}

const goroutineSources = `
-- a/a.go --
package a
import "time"
type Log[T any] struct{}
func Open() { go func() {}() }
func (l *Log[T]) run() { func() { go l.run() }() }
func wait(g group) { g.Go(func() {}) }
var tick = time.AfterFunc(0, nil)
func quiet(w waiter) { w.Go() }
-- a/a_test.go --
package a
func start() { go start() }
-- a/atest/atest.go --
package atest
func start() { go start() }
`

func TestRuleGoroutines(t *testing.T) {
	m, table := sources(t, goroutineSources), rows(t, "a | -\na/atest test | a")
	document := "" +
		"Text about `a.nothing`.\n\n" +
		"| Goroutine | Started in | Ends |\n" +
		"|---|---|---|\n" +
		"| opener, not `a.other` | `a.Open`, `a.Log.run` | soon |\n" +
		"| HTTP's own | `net/http.Server.Serve` | later |\n" +
		"| gone | `a.Closed` | never |\n\n" +
		"| Other | Table |\n|---|---|\n| `x` | `a.stale` |\n"
	expect(t, goroutinesWithoutRow(m, table, document),
		"a/a.go:6: no row names `a.wait`",
		"a/a.go:7: no row names `a.tick`",
		"ARCHITECTURE.md: `a.Closed` starts no goroutine",
	)
	expect(t, goroutinesWithoutRow(m, table, ""), "`a.Open`", "`a.Log.run`", "`a.wait`", "`a.tick`")
}

func TestRuleSleep(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
import "time"
func f() { time.Sleep(1) }
-- a/a_test.go --
package a
import (
	"testing"
	"testing/synctest"
	"time"
)
func TestReal(t *testing.T) { time.Sleep(1) }
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { time.Sleep(1) })
	time.Sleep(1)
}
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }
-- a/atest/atest.go --
package atest
import "time"
func f() { time.Sleep(1) }
-- cmd/m/m_test.go --
package main
import "time"
func f() { time.Sleep(1) }
`)
	table := rows(t, "a | -\na/atest test | a\ncmd/m sleeps | any")
	expect(t, sleeps(m, table), "a/a_test.go:7", "a/a_test.go:10", "a/atest/atest.go:3")
}

func TestRuleErrorText(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
import (
	"fmt"
	"strings"
)
func f(err error) bool {
	fmt.Println(err.Error())
	_ = strings.ReplaceAll(err.Error(), "\n", " ")
	if err.Error() == "EOF" || "x" != (err.Error()) {
		return true
	}
	switch err.Error() {
	}
	return strings.Contains(strings.ToLower(err.Error()), "closed") ||
		pattern.MatchString(err.Error())
}
-- a/a_test.go --
package a
var _ = err.Error() == "EOF"
`)
	expect(t, errorTexts(m, rows(t, "a | -")), "a/a.go:9: asks", "a/a.go:9: asks", "a/a.go:12", "a/a.go:14", "a/a.go:15")
}

func TestRulePackageNames(t *testing.T) {
	m := sources(t, `
-- a/util/x.go --
package util
-- pkg/b/x.go --
package b
-- c/x_test.go --
package types_test
-- utility/x.go --
package utility
`)
	expect(t, vagueNamed(m), `a/util: is called "util"`, `pkg/b: is called "pkg"`, `c: is called "types"`)
}

func TestRulePackageComment(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
-- a/b.go --
// Copyright notice.

package a
-- b/a.go --
package b
-- b/doc.go --
// Package b is documented.
package b
-- c/c_test.go --
package c
-- d/d.go --
//go:build linux

package d
-- d/d_test.go --
// Package d is documented in the wrong place.
package d
`)
	expect(t, packagesWithoutComment(m), "a/doc.go", "d/doc.go")
}

func TestRuleInit(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
func init() {}
func (t T) init() {}
-- a/a_test.go --
package a
func init() {}
`)
	expect(t, initFunctions(m), "a/a.go:2: an init function")
}

func TestRuleReferenceTests(t *testing.T) {
	m := sources(t, `
-- a/a_test.go --
package a
import "example.com/m/internal/referencetest"
	func TestTraces(t *testing.T) { referencetest.Dir(t) }
	func TestReferenceTraces(t *testing.T) { referencetest.Dir(t) }
	func traces(t *testing.T) string { return referencetest.Dir(t) }
`)
	expect(t, referenceTestsMisnamed(m), "a/a_test.go:3: TestTraces")
}

func TestRuleSizes(t *testing.T) {
	fits := strings.Repeat("\tf()\n", longFunction-2) // two more lines for func and }
	filler := strings.Repeat("// line\n", longFile)
	m := sources(t, "-- a/a.go --\npackage a\nfunc f() {\n"+fits+"}\nfunc g() {\n\tf()\n"+fits+"}\n"+
		"-- a/long.go --\npackage a\n"+filler+
		"-- a/long_test.go --\npackage a\n"+filler)
	expect(t, tooLong(m), "a/a.go:82: g has 81 lines (over 80)", "a/long.go: 601 lines (over 600)")
}
