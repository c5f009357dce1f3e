package archtest

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

//go:embed imports.txt
var importsText string

// root is the module this test stands in.
const root = "../.."

var loadOnce = sync.OnceValues(func() (*module, error) { return load(os.DirFS(filepath.FromSlash(root))) })

func thisModule(t *testing.T) *module {
	t.Helper()
	m, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func thisTable(t *testing.T) *table {
	t.Helper()
	rows, err := parseTable(importsText)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// hold fails with the reason for a rule when it is broken anywhere.
func hold(t *testing.T, found []violation, reason string) {
	t.Helper()
	for _, v := range found {
		t.Error(v)
	}
	if len(found) > 0 {
		t.Log("why: " + reason)
	}
}

func TestSourcesAreThere(t *testing.T) {
	if n := len(thisModule(t).packages); n < 2 {
		t.Fatalf("got %d packages below %s, want the whole module: the other rules would hold of nothing", n, root)
	}
}

func TestEveryPackageHasRow(t *testing.T) {
	hold(t, packagesWithoutRow(thisModule(t), thisTable(t)),
		"the import table is the picture of the architecture; what is not on it has no place yet")
}

func TestEveryRowHasPackage(t *testing.T) {
	hold(t, rowsWithoutPackage(thisModule(t), thisTable(t)),
		"a row that nothing stands on is a picture of what is not there, and lets something be imported that nobody decided on")
}

func TestImportsFollowTable(t *testing.T) {
	hold(t, importsOutsideTable(thisModule(t), thisTable(t)),
		"imports point inward only, so that an inner package can be read, tested and trusted without the outer ones")
}

func TestThirdPartyFollowsTable(t *testing.T) {
	hold(t, thirdPartyOutsideTable(thisModule(t), thisTable(t)),
		"whoever imports a public package takes on its dependencies; test libraries do not belong in a binary")
}

func TestTestingStaysInTests(t *testing.T) {
	hold(t, testingInProduction(thisModule(t), thisTable(t)),
		"package testing puts its flags into every binary that links it")
}

func TestTestPackagesSayTheyAre(t *testing.T) {
	hold(t, testPackagesMisnamed(thisTable(t)), "a reader should see from an import that it is for tests")
}

func TestPurePackagesArePure(t *testing.T) {
	hold(t, impurities(thisModule(t), thisTable(t)),
		"host and client run the same pure code; it must give the same answer for the same values anywhere, any time")
}

func TestGoroutinesAreListed(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(filepath.FromSlash(root), "ARCHITECTURE.md"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	hold(t, goroutinesWithoutRow(thisModule(t), thisTable(t), string(document)),
		"every goroutine has an owner, a stop and a join, written down in the table of goroutines in ARCHITECTURE.md: "+
			"a row whose cell in the column 'Started in' holds the name of the function in backticks")
}

func TestNoSleepInTests(t *testing.T) {
	hold(t, sleeps(thisModule(t), thisTable(t)),
		"a sleep is too short on a busy machine and too long on every other; use testing/synctest or a channel")
}

func TestErrorsAreNotComparedByText(t *testing.T) {
	hold(t, errorTexts(thisModule(t), thisTable(t)), "the text of an error is for people and may be reworded any day")
}

func TestPackageNamesSayWhatIsInThem(t *testing.T) {
	hold(t, vagueNamed(thisModule(t)), "a package without a subject collects whatever has no place elsewhere")
}

func TestPackagesHaveComments(t *testing.T) {
	hold(t, packagesWithoutComment(thisModule(t)),
		"a package says what it promises, its invariants, what concurrent callers may do, and what it is not")
}

func TestNoInitFunctions(t *testing.T) {
	hold(t, initFunctions(thisModule(t)), "behaviour must not depend on which packages a binary happens to import")
}

func TestNamesOfReferenceTests(t *testing.T) {
	hold(t, referenceTestsMisnamed(thisModule(t)),
		"`make reference` finds these tests by name and makes sure that they do not skip")
}

// TestSizes prints, and never fails: run it with -v.
func TestSizes(t *testing.T) {
	for _, v := range tooLong(thisModule(t)) {
		t.Log(v)
	}
}
