package cli

import (
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/narad/client"
)

// damaged tells of the entries of a list whose stored data is damaged, if that is what err
// says. All others were listed, so it is no error then.
func (a *app) damaged(err error) error {
	var damage *client.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	for _, e := range damage.Entries {
		fmt.Fprintln(a.Stderr, oneLine("damaged on the host: "+joined(", ", named("session", e.SessionID),
			named("interrupt", e.InterruptID), named("attachment", e.AttachmentID), named("artifact", e.ArtifactID))))
	}
	fmt.Fprintln(a.Stderr, "the log of the host says more, and so does, once it is stopped: mahati verify")
	return nil
}

func named(what, id string) string {
	if id == "" {
		return ""
	}
	return what + " " + id
}
