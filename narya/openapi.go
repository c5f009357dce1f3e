package narya

import _ "embed" // for the document

//go:embed openapi.json
var openAPI string

// OpenAPI returns the OpenAPI 3.1 document of what Mahati serves of the contract, in our
// words.
func OpenAPI() []byte { return []byte(openAPI) }
