// Reads a dashboard by Grafana's own schema, in which every field is known and has a value that it may have, and prints what
// it has read. Fails in words.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func judge(input io.Reader, output io.Writer) error {
	plugins.RegisterDefaultPlugins()
	text, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	// What the strict reader has read is not whole, and it gives a list of errors, which may be empty.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		return err
	}
	var found dashboard.Dashboard
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	if err := found.Validate(); err != nil {
		return err
	}
	for _, each := range found.Panels {
		if each.Panel == nil {
			continue
		}
		if _, known := cog.ConfigForPanelcfgVariant(each.Panel.Type); !known {
			return fmt.Errorf("there is no panel of type %q", each.Panel.Type)
		}
	}
	return json.NewEncoder(output).Encode(found)
}
