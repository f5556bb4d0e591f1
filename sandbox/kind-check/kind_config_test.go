// Package kindcheck holds kind-config.yaml, and what sandbox/kind.sh makes of it
// for other numbers of nodes, against kind's own configuration types, decoded as
// strictly as kind itself does. kind cannot run where this project is made.
package kindcheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func decode(t *testing.T, text []byte) v1alpha4.Cluster {
	t.Helper()
	var cluster v1alpha4.Cluster
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&cluster); err != nil {
		t.Fatalf("kind would refuse this configuration: %v\n%s", err, text)
	}
	v1alpha4.SetDefaultsCluster(&cluster)
	return cluster
}

func rendered(t *testing.T, nodes int, state string) v1alpha4.Cluster {
	t.Helper()
	command := exec.Command("bash", "-euc", ". ../lib.sh; . ../kind.sh; kind_config")
	command.Env = append(os.Environ(), fmt.Sprintf("SANDBOX_NODES=%d", nodes), "SANDBOX_STATE="+state)
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func TestTheFileItself(t *testing.T) {
	text, err := os.ReadFile("../../kind-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cluster := decode(t, text)
	if cluster.APIVersion != "kind.x-k8s.io/v1alpha4" || cluster.Kind != "Cluster" {
		t.Errorf("it is a %s %s", cluster.APIVersion, cluster.Kind)
	}
	if len(cluster.Nodes) != 3 {
		t.Errorf("it has %d nodes, the sandbox 3", len(cluster.Nodes))
	}
	for _, mount := range cluster.Nodes[0].ExtraMounts[:1] {
		if _, err := os.Stat(filepath.Join("../..", mount.HostPath)); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryNumberOfNodes(t *testing.T) {
	for nodes := range 10 {
		cluster := rendered(t, nodes, "/some/state")
		if want := max(nodes, 1); len(cluster.Nodes) != want {
			t.Errorf("SANDBOX_NODES=%d makes %d nodes, not %d", nodes, len(cluster.Nodes), want)
		}
		for i, node := range cluster.Nodes {
			want := v1alpha4.WorkerRole
			if i == 0 {
				want = v1alpha4.ControlPlaneRole
			}
			if node.Role != want || !strings.HasPrefix(node.Image, "kindest/node:v1.36.") {
				t.Errorf("SANDBOX_NODES=%d: node %d is a %s of %q", nodes, i, node.Role, node.Image)
			}
		}
		takesPods := len(cluster.Nodes[0].KubeadmConfigPatches) == 1
		if takesPods != (nodes > 0) {
			t.Errorf("SANDBOX_NODES=%d: the control plane takes pods: %v", nodes, takesPods)
		}
	}
}

func TestPathsAreAbsolute(t *testing.T) {
	cluster := rendered(t, 3, "/some/state")
	mounts := cluster.Nodes[0].ExtraMounts
	if len(mounts) != 2 || mounts[1].HostPath != "/some/state/audit" {
		t.Fatalf("mounts: %+v", mounts)
	}
	if _, err := os.Stat(mounts[0].HostPath); err != nil || !filepath.IsAbs(mounts[0].HostPath) {
		t.Errorf("audit policy: %q, %v", mounts[0].HostPath, err)
	}
}

// The patches are text within the text, which the decoding above does not look into.
func TestPatches(t *testing.T) {
	cluster := rendered(t, 3, "/some/state")
	var operations []struct {
		Op, Path string
		Value    yaml.Node
	}
	if err := yaml.Unmarshal([]byte(cluster.KubeadmConfigPatchesJSON6902[0].Patch), &operations); err != nil {
		t.Fatal(err)
	}
	arguments := map[string]string{}
	for _, operation := range operations {
		if operation.Op != "add" {
			t.Errorf("operation %q", operation.Op)
		}
		if operation.Path == "/apiServer/extraArgs/-" {
			var argument struct{ Name, Value string }
			if err := operation.Value.Decode(&argument); err != nil {
				t.Error(err)
			}
			arguments[argument.Name] = argument.Value
		}
	}
	mount := cluster.Nodes[0].ExtraMounts
	if arguments["audit-policy-file"] != mount[0].ContainerPath {
		t.Errorf("the policy is mounted at %s, the argument says %s", mount[0].ContainerPath, arguments["audit-policy-file"])
	}
	if filepath.Dir(arguments["audit-log-path"]) != mount[1].ContainerPath {
		t.Errorf("the log's directory is mounted at %s, the argument says %s", mount[1].ContainerPath, arguments["audit-log-path"])
	}
	var kubeadm struct {
		Kind             string
		NodeRegistration struct{ Taints []string } `yaml:"nodeRegistration"`
	}
	if err := yaml.Unmarshal([]byte(cluster.Nodes[0].KubeadmConfigPatches[0]), &kubeadm); err != nil {
		t.Fatal(err)
	}
	if kubeadm.Kind != "InitConfiguration" || kubeadm.NodeRegistration.Taints == nil || len(kubeadm.NodeRegistration.Taints) != 0 {
		t.Errorf("the node's patch is %+v", kubeadm)
	}
}
