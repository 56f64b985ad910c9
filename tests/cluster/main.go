// Command testcluster runs a real Kubernetes API in one process: embedded etcd, the
// real kube-apiserver and (by default) kube-controller-manager with a chosen
// list of controllers. It is also kubectl and helm.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apioptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kcmapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

const defaultControllers = "garbage-collector-controller,namespace-controller," +
	"serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
	"clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller," +
	"deployment-controller,replicaset-controller"

// Called by the name kubectl or helm (a symbolic link), or with it as the first
// argument, this is that program.
func main() {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && (os.Args[1] == "kubectl" || os.Args[1] == "helm") {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	switch name {
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	case "helm":
		os.Exit(helm())
	}
	if err := up(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		os.Exit(1)
	}
}

// helm is helm.sh/helm/v4/cmd/helm's main.
func helm() int {
	kube.ManagedFieldsManager = "helm"
	cmd, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err == nil {
		err = cmd.Execute()
	}
	var code helmcmd.CommandError
	switch {
	case errors.As(err, &code):
		return code.ExitCode
	case err != nil:
		return 1
	}
	return 0
}

func up(args []string) error {
	fs := flag.NewFlagSet("testcluster", flag.ExitOnError)
	dir := fs.String("dir", "", "state directory (certificates, kubeconfig, etcd); made if missing")
	port := fs.Int("port", 0, "API port on 127.0.0.1 (0: a free one)")
	controllers := fs.String("controllers", defaultControllers, "kube-controller-manager controllers to run, comma-separated (empty: no controller manager)")
	fakePods := fs.Bool("fake-ready-pods", false, "mark every pod Running and Ready (there is no kubelet)")
	extra := fs.String("apiserver-args", "", "further kube-apiserver flags, space-separated")
	verbosity := fs.Int("v", 0, "klog verbosity")
	_ = fs.Parse(args)
	if *dir == "" {
		return errors.New("--dir is required")
	}
	begin := time.Now()
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	abs, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	kfs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(kfs)
	_ = kfs.Set("v", fmt.Sprint(*verbosity))

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	etcd, endpoint, err := startEtcd(abs)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer etcd.Close()
	etcdUp := time.Since(begin)

	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return err
	}
	url := "https://" + ln.Addr().String()
	if err := writeCredentials(abs, url); err != nil {
		return err
	}
	apiErr := make(chan error, 1)
	go func() { apiErr <- runAPIServer(ctx, abs, endpoint, ln, strings.Fields(*extra)) }()
	kubeconfig := filepath.Join(abs, "kubeconfig")
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if err := waitReady(ctx, abs, url, apiErr); err != nil {
		return err
	}
	apiUp := time.Since(begin)
	kcmErr := make(chan error, 1)
	if *controllers != "" {
		go func() { kcmErr <- runControllers(ctx, abs, *controllers) }()
		if err := waitDefaultServiceAccount(ctx, cfg, kcmErr); err != nil {
			return err
		}
	}
	if *fakePods {
		go fakeReadyPods(ctx, cfg)
	}
	_ = os.WriteFile(filepath.Join(abs, "ready"), []byte(url+"\n"), 0o644)
	fmt.Printf("ready %s kubeconfig=%s etcd=%dms readyz=%dms all=%dms\n", url, kubeconfig,
		etcdUp.Milliseconds(), apiUp.Milliseconds(), time.Since(begin).Milliseconds())

	select {
	case err := <-apiErr:
		return fmt.Errorf("kube-apiserver ended: %w", err)
	case err := <-kcmErr:
		return fmt.Errorf("kube-controller-manager ended: %w", err)
	case <-ctx.Done():
	}
	select {
	case err = <-apiErr:
	case <-time.After(15 * time.Second):
		err = errors.New("kube-apiserver did not stop in 15 s")
	}
	return err
}

func startEtcd(dir string) (*embed.Etcd, string, error) {
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "etcd")
	// Unix sockets: no port to race for, and only this user can reach the store.
	client, peer := "unix://"+filepath.Join(dir, "etcd-c.sock"), "unix://"+filepath.Join(dir, "etcd-p.sock")
	if len(client)-len("unix://") > 107 {
		return nil, "", fmt.Errorf("--dir is too long for a Unix socket: %s", dir)
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = embedURLs(client), embedURLs(client)
	c.ListenPeerUrls, c.AdvertisePeerUrls = embedURLs(peer), embedURLs(peer)
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel, c.LogOutputs = "warn", []string{"stderr"}
	c.UnsafeNoFsync = true // a throw-away store
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, client, nil
	case err := <-e.Err():
		return nil, "", err
	case <-time.After(30 * time.Second):
		e.Close()
		return nil, "", errors.New("not ready in 30 s")
	}
}

func runAPIServer(ctx context.Context, dir, etcdURL string, ln net.Listener, extra []string) error {
	p := func(name string) string { return filepath.Join(dir, name) }
	s := apioptions.NewServerRunOptions()
	s.SecureServing.Listener = ln
	s.SecureServing.BindPort = ln.Addr().(*net.TCPAddr).Port
	fs := merge("kube-apiserver", s.Flags())
	err := fs.Parse(append([]string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + etcdURL,
		"--cert-dir=" + dir,
		"--tls-cert-file=" + p("apiserver.crt"),
		"--tls-private-key-file=" + p("apiserver.key"),
		"--client-ca-file=" + p("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p("sa.pub"),
		"--service-account-signing-key-file=" + p("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--profiling=false",
		"--shutdown-delay-duration=0s",
	}, extra...))
	if err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	done, err := s.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := done.Validate(); len(errs) != 0 {
		return errors.Join(errs...)
	}
	return apiapp.Run(ctx, done)
}

func runControllers(ctx context.Context, dir, controllers string) error {
	p := func(name string) string { return filepath.Join(dir, name) }
	s, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	fs := merge("kube-controller-manager", s.Flags(kcmapp.KnownControllers(), kcmapp.ControllersDisabledByDefault(), kcmapp.ControllerAliases()))
	if err := fs.Parse([]string{
		"--kubeconfig=" + p("controller-manager.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=" + controllers,
		"--root-ca-file=" + p("ca.crt"),
		"--service-account-private-key-file=" + p("sa.key"),
		"--use-service-account-credentials=true",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	}); err != nil {
		return err
	}
	c, err := s.Config(ctx, kcmapp.KnownControllers(), kcmapp.ControllersDisabledByDefault(), kcmapp.ControllerAliases())
	if err != nil {
		return err
	}
	return kcmapp.Run(ctx, c.Complete())
}

func merge(name string, sets cliflag.NamedFlagSets) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, f := range sets.FlagSets {
		fs.AddFlagSet(f)
	}
	return fs
}

func waitReady(ctx context.Context, dir, url string, apiErr <-chan error) error {
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	// A client of its own: /readyz is open to anonymous callers.
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if resp, err := client.Get(url + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-apiErr:
			return fmt.Errorf("kube-apiserver: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New("/readyz not ok in 2 min")
		}
	}
}

// waitDefaultServiceAccount waits for the controllers' first result, without
// which a pod in the namespace default is refused.
func waitDefaultServiceAccount(ctx context.Context, cfg *rest.Config, kcmErr <-chan error) error {
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if _, err := cs.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err == nil {
			return nil
		}
		select {
		case err := <-kcmErr:
			return fmt.Errorf("kube-controller-manager: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("no service account default/default in 1 min: is serviceaccount-controller among --controllers?")
}

// fakeReadyPods stands in for scheduler and kubelet: every pod is at once
// Running and Ready. No node is set, so a deleted pod goes away at once.
func fakeReadyPods(ctx context.Context, cfg *rest.Config) {
	cs := kubernetes.NewForConfigOrDie(cfg)
	patch := []byte(`{"status":{"phase":"Running","conditions":[` +
		`{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"Initialized","status":"True"}]}}`)
	mark := func(o any) {
		if p, ok := o.(*corev1.Pod); ok && p.DeletionTimestamp == nil && (p.Status.Phase == "" || p.Status.Phase == corev1.PodPending) {
			if _, err := cs.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				klog.ErrorS(err, "fake-ready-pods", "pod", klog.KObj(p))
			}
		}
	}
	f := informers.NewSharedInformerFactory(cs, time.Minute)
	_, _ = f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: mark, UpdateFunc: func(_, o any) { mark(o) }})
	f.Start(ctx.Done())
}
