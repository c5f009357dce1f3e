package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/mahati-host/mahati/conformance"
)

type conformCommand struct {
	Token     string   `placeholder:"TOKEN" help:"Access token that may do everything. Otherwise MAHATI_TOKEN."`
	TokenFile string   `placeholder:"FILE" help:"File that holds the token."`
	Agent     string   `placeholder:"NAME" help:"Agent that does what the checks ask for. Without it they are skipped."`
	Executor  string   `placeholder:"ID" help:"Executor id to attach, which nobody else uses now. Without it client execution is skipped."`
	CWD       string   `name:"cwd" placeholder:"DIR" help:"Directory of the sessions that are made, if the host wants one."`
	Only      []string `placeholder:"a,b" help:"Only the checks whose names begin so."`
	JSON      bool     `name:"json" help:"Print one JSON object for each check, and the counts as the last."`
	Script    bool     `help:"Print the script that makes Mahati's scripted agent such an agent, and end."`
	URL       string   `arg:"" optional:"" name:"url" help:"Address of the host."`
}

func (conformCommand) Help() string {
	return `Checks from outside whether a host keeps to narad/v1, and prints what it found of each demand. It makes
sessions of its own and deletes them at the end. The exit code is 0 when nothing failed, 1 when something did,
and 2 when the command was called wrongly or no host answers.

Example: mahati conformance http://127.0.0.1:7717 --token-file token
Example: mahati conformance --script > agent.yaml   # then configure it, and give --agent`
}

// Run performs the command.
func (c conformCommand) Run(ctx context.Context, a *app) error {
	if c.Script {
		_, err := fmt.Fprint(a.Stdout, conformance.Agent)
		return err
	}
	if c.URL == "" {
		return usage("mahati conformance --help", "the address of a host is required")
	}
	token, err := c.token(a)
	if err != nil {
		return err
	}
	report, err := conformance.Run(ctx, conformance.Target{
		URL: c.URL, Token: token, Agent: c.Agent, Executor: c.Executor, CWD: c.CWD, Only: c.Only,
	})
	if errors.Is(err, conformance.ErrTarget) || errors.Is(err, conformance.ErrChecks) {
		return &fault{err: err, code: exitUsage, hint: "mahati conformance --help"}
	}
	if err != nil {
		return err
	}
	if err := c.print(a, report); err != nil {
		return err
	}
	if report.Count(conformance.Fail) > 0 {
		return &fault{code: exitFailed}
	}
	return nil
}

func (c conformCommand) token(a *app) (string, error) {
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", &fault{err: fmt.Errorf("read the token: %w", err), code: exitUsage}
		}
		return strings.TrimSpace(string(text)), nil
	}
	if c.Token != "" {
		return c.Token, nil
	}
	if token := a.Getenv("MAHATI_TOKEN"); token != "" {
		return token, nil
	}
	return "", usage("--token, --token-file or MAHATI_TOKEN", "a token is required")
}

func (c conformCommand) print(a *app, r conformance.Report) error {
	if c.JSON {
		return c.printLines(a, r)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, result := range r.Results {
		said := result.Demands
		if result.Outcome != conformance.Pass {
			said = result.Detail
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Outcome, result.Check, result.Cites, oneLine(said)); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s: %d passed, %d failed, %d skipped\n", oneLine(r.URL),
		r.Count(conformance.Pass), r.Count(conformance.Fail), r.Count(conformance.Skip))
	return err
}

// conformanceCounts is the last line for programs.
type conformanceCounts struct {
	URL  string `json:"url"`
	Pass int    `json:"pass"`
	Fail int    `json:"fail"`
	Skip int    `json:"skip"`
}

func (c conformCommand) printLines(a *app, r conformance.Report) error {
	for _, result := range r.Results {
		if err := a.printJSON(result); err != nil {
			return err
		}
	}
	return a.printJSON(conformanceCounts{r.URL, r.Count(conformance.Pass), r.Count(conformance.Fail), r.Count(conformance.Skip)})
}
