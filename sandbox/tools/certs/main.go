// certs writes every key, certificate and kubeconfig of a sandbox into one
// directory:
//
//	certs DIRECTORY SERVER NODES ADDRESS...
//
// SERVER is the API server's address inside the sandbox (https://host:port),
// NODES the number of kubelets, each ADDRESS a name or address in the API
// server's certificate. The files carry kubeadm's names.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

func main() {
	log.SetFlags(0)
	if len(os.Args) < 5 {
		log.Fatal("usage: certs DIRECTORY SERVER NODES ADDRESS...")
	}
	nodes, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatalf("certs: NODES: %v", err)
	}
	if err := writeAll(os.Args[1], os.Args[2], nodes, os.Args[4:]); err != nil {
		log.Fatalf("certs: %v", err)
	}
}

func writeAll(directory, server string, nodes int, addresses []string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	cluster, clusterErr := newAuthority(directory, "ca", "kubernetes")
	frontProxy, frontProxyErr := newAuthority(directory, "front-proxy-ca", "front-proxy")
	if err := errors.Join(clusterErr, frontProxyErr); err != nil {
		return err
	}
	serviceAccounts, err := newKey()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(serviceAccounts.Public())
	if err != nil {
		return err
	}
	err = errors.Join(
		writeKey(filepath.Join(directory, "sa.key"), serviceAccounts),
		writePEM(filepath.Join(directory, "sa.pub"), "PUBLIC KEY", public),
		cluster.issueFiles(directory, "apiserver", subject("kube-apiserver"), addresses),
		cluster.issueFiles(directory, "apiserver-kubelet-client", subject("kube-apiserver", "system:masters"), nil),
		frontProxy.issueFiles(directory, "front-proxy-client", subject("front-proxy-client"), nil),
		cluster.issueKubeconfig(directory, "admin", server, subject("sandbox-admin", "system:masters")),
		cluster.issueKubeconfig(directory, "addons", server, subject("sandbox-addons", "system:masters")),
		cluster.issueKubeconfig(directory, "controller-manager", server, subject("system:kube-controller-manager")),
		cluster.issueKubeconfig(directory, "scheduler", server, subject("system:kube-scheduler")),
		cluster.issueKubeconfig(directory, "proxy", server, subject("system:kube-proxy")),
	)
	for node := range nodes {
		name := fmt.Sprintf("node-%d", node)
		err = errors.Join(err, cluster.issueKubeconfig(directory, name, server, subject("system:node:"+name, "system:nodes")))
	}
	return err
}

func subject(name string, groups ...string) pkix.Name {
	return pkix.Name{CommonName: name, Organization: groups}
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	encoded     []byte
}

func newAuthority(directory, file, name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key, encodePEM("CERTIFICATE", der)}, errors.Join(
		writePEM(filepath.Join(directory, file+".crt"), "CERTIFICATE", der),
		writeKey(filepath.Join(directory, file+".key"), key),
	)
}

// issue signs a certificate for a client and, where addresses are given, a server.
func (a *authority) issue(name pkix.Name, addresses []string) ([]byte, crypto.Signer, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, address := range addresses {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, address)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	return der, key, err
}

func (a *authority) issueFiles(directory, file string, name pkix.Name, addresses []string) error {
	der, key, err := a.issue(name, addresses)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(directory, file+".crt"), "CERTIFICATE", der),
		writeKey(filepath.Join(directory, file+".key"), key),
	)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: sandbox
  context: {cluster: sandbox, user: %[3]s}
current-context: sandbox
`

func (a *authority) issueKubeconfig(directory, file, server string, name pkix.Name) error {
	der, key, err := a.issue(name, nil)
	if err != nil {
		return err
	}
	encodedKey, err := encodeKey(key)
	if err != nil {
		return err
	}
	base64Of := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf(kubeconfig, server, base64Of(a.encoded), name.CommonName,
		base64Of(encodePEM("CERTIFICATE", der)), base64Of(encodedKey))
	return os.WriteFile(filepath.Join(directory, file+".kubeconfig"), []byte(text), 0o600)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encodePEM("PRIVATE KEY", der), err
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writeKey(path string, key crypto.Signer) error {
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, encoded, 0o600)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, encodePEM(kind, der), 0o600)
}
