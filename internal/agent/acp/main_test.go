package acp_test

import (
	"testing"

	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	acptest.Main()
	goleak.VerifyTestMain(m)
}
