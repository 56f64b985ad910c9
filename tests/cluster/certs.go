package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func embedURLs(s string) []url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return []url.URL{*u}
}

// writeCredentials makes a throw-away CA and everything signed by it:
// ca.crt, apiserver.{crt,key}, sa.{key,pub}, kubeconfig (system:masters) and
// controller-manager.kubeconfig.
func writeCredentials(dir, server string) error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "testcluster-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caPEM, err := sign(ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	if err := put(dir, "ca.crt", caPEM); err != nil {
		return err
	}
	issue := func(t *x509.Certificate) (crt, key []byte, err error) {
		k, err := newKey()
		if err != nil {
			return nil, nil, err
		}
		if crt, err = sign(t, ca, k.Public(), caKey); err != nil {
			return nil, nil, err
		}
		key, err = keyPEM(k)
		return crt, key, err
	}

	crt, key, err := issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	})
	if err != nil {
		return err
	}
	if err := put(dir, "apiserver.crt", crt); err != nil {
		return err
	}
	if err := put(dir, "apiserver.key", key); err != nil {
		return err
	}

	for file, who := range map[string]pkix.Name{
		"kubeconfig":                    {CommonName: "admin", Organization: []string{"system:masters"}},
		"controller-manager.kubeconfig": {CommonName: "system:kube-controller-manager"},
	} {
		crt, key, err := issue(&x509.Certificate{Subject: who, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return err
		}
		c := clientcmdapi.NewConfig()
		c.Clusters["testcluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
		c.AuthInfos[who.CommonName] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
		c.Contexts["testcluster"] = &clientcmdapi.Context{Cluster: "testcluster", AuthInfo: who.CommonName}
		c.CurrentContext = "testcluster"
		if err := clientcmd.WriteToFile(*c, filepath.Join(dir, file)); err != nil {
			return err
		}
	}

	// Kept over a restart on the same directory: tokens given out stay good.
	if _, err := os.Stat(filepath.Join(dir, "sa.key")); err == nil {
		return nil
	}
	sa, err := newKey()
	if err != nil {
		return err
	}
	key, err = keyPEM(sa)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(sa.Public())
	if err != nil {
		return err
	}
	if err := put(dir, "sa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})); err != nil {
		return err
	}
	return put(dir, "sa.key", key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func keyPEM(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func sign(t, parent *x509.Certificate, pub crypto.PublicKey, by crypto.Signer) ([]byte, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t.SerialNumber = n
	t.NotBefore, t.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0)
	if !t.IsCA {
		t.KeyUsage = x509.KeyUsageDigitalSignature
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, pub, by)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func put(dir, name string, b []byte) error { return os.WriteFile(filepath.Join(dir, name), b, 0o600) }
