package controlplane

import (
	"path/filepath"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

// EtcdSpec starts the store. Losing it in a power cut is no loss, so it does
// not wait for the disk.
func (c *ControlPlane) EtcdSpec() process.Spec {
	client, peer := "https://"+address(c.Ports.Etcd), "https://"+address(c.EtcdPeer)
	pair := c.serving[Etcd]
	return c.spec(Etcd,
		flag("name", "sandbox"),
		flag("data-dir", c.Data(Etcd)),
		flag("listen-client-urls", client),
		flag("advertise-client-urls", client),
		flag("listen-peer-urls", peer),
		flag("initial-advertise-peer-urls", peer),
		flag("initial-cluster", "sandbox="+peer),
		flag("cert-file", pair.CertFile),
		flag("key-file", pair.KeyFile),
		flag("client-cert-auth", true),
		flag("trusted-ca-file", c.authority.CAFile()),
		flag("peer-cert-file", pair.CertFile),
		flag("peer-key-file", pair.KeyFile),
		flag("peer-client-cert-auth", true),
		flag("peer-trusted-ca-file", c.authority.CAFile()),
		flag("unsafe-no-fsync", true),
		// A store without peers elects itself once this many milliseconds are
		// over; the stock second is for networks.
		flag("heartbeat-interval", 20),
		flag("election-timeout", 100),
		flag("log-level", "warn"),
	)
}

// APIServerSpec starts the API server with RBAC on.
func (c *ControlPlane) APIServerSpec() process.Spec {
	pair, store := c.serving[APIServer], c.serving[Etcd]
	return c.spec(APIServer,
		flag("etcd-servers", "https://"+address(c.Ports.Etcd)),
		flag("etcd-cafile", c.authority.CAFile()),
		flag("etcd-certfile", store.CertFile),
		flag("etcd-keyfile", store.KeyFile),
		flag("bind-address", loopback),
		flag("advertise-address", loopback),
		flag("secure-port", c.Ports.APIServer),
		flag("tls-cert-file", pair.CertFile),
		flag("tls-private-key-file", pair.KeyFile),
		flag("client-ca-file", c.authority.CAFile()),
		flag("authorization-mode", "RBAC"),
		flag("requestheader-client-ca-file", c.proxy.CAFile()),
		flag("requestheader-allowed-names", proxyName),
		flag("requestheader-username-headers", "X-Remote-User"),
		flag("requestheader-group-headers", "X-Remote-Group"),
		flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
		flag("proxy-client-cert-file", c.proxyPair.CertFile),
		flag("proxy-client-key-file", c.proxyPair.KeyFile),
		flag("service-cluster-ip-range", "10.96.0.0/16"),
		flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
		flag("service-account-key-file", c.publicKey),
		flag("service-account-signing-key-file", c.signingKey),
		flag("feature-gates", featureGates),
		flag("runtime-config", "scheduling.k8s.io/v1alpha2=true"),
		// An endpoint of the kubernetes service may not be on loopback.
		flag("endpoint-reconciler-type", "none"),
		// A thousand simulated kubelets speak through one client.
		flag("max-requests-inflight", 2000),
		flag("max-mutating-requests-inflight", 1000),
		flag("profiling", false),
	)
}

// unneededControllers are those for storage, certificates and load that no
// simulated node has. ttl-controller would write each node once more.
func unneededControllers() []string {
	return []string{
		"bootstrap-signer-controller",
		"certificatesigningrequest-approving-controller",
		"certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller",
		"cloud-node-lifecycle-controller",
		"endpointslice-mirroring-controller",
		"horizontal-pod-autoscaler-controller",
		"kube-apiserver-serving-clustertrustbundle-publisher-controller",
		"legacy-serviceaccount-token-cleaner-controller",
		"node-ipam-controller",
		"node-route-controller",
		"persistentvolume-attach-detach-controller",
		"persistentvolume-expander-controller",
		"podcertificaterequest-cleaner-controller",
		"service-lb-controller",
		"storage-version-migrator-controller",
		"storageversion-garbage-collector-controller",
		"token-cleaner-controller",
		"ttl-controller",
		"volumeattributesclass-protection-controller",
	}
}

// ControllerManagerSpec starts the stock controllers.
func (c *ControlPlane) ControllerManagerSpec() process.Spec {
	pair, kubeconfig := c.serving[ControllerManager], c.kubeconfigOf(ControllerManager)
	return c.spec(ControllerManager,
		flag("kubeconfig", kubeconfig),
		flag("authentication-kubeconfig", kubeconfig),
		flag("authorization-kubeconfig", kubeconfig),
		flag("bind-address", loopback),
		flag("secure-port", c.Ports.ControllerManager),
		flag("tls-cert-file", pair.CertFile),
		flag("tls-private-key-file", pair.KeyFile),
		flag("root-ca-file", c.authority.CAFile()),
		flag("service-account-private-key-file", c.signingKey),
		// Each controller acts as its own service account, as in any cluster
		// that kubeadm makes, so that policies see the users they will see.
		flag("use-service-account-credentials", true),
		flag("leader-elect", false),
		flag("controllers", "*,-"+strings.Join(unneededControllers(), ",-")),
		flag("feature-gates", featureGates),
		flag("kube-api-qps", clientQPS),
		flag("kube-api-burst", clientBurst),
		flag("concurrent-job-syncs", 20),
		flag("concurrent-namespace-syncs", 20),
		flag("node-monitor-grace-period", c.monitorGracePeriod()),
		flag("profiling", false),
	)
}

// SchedulerSpec starts the stock scheduler.
func (c *ControlPlane) SchedulerSpec() process.Spec {
	pair, kubeconfig := c.serving[Scheduler], c.kubeconfigOf(Scheduler)
	return c.spec(Scheduler,
		flag("config", c.schedulerConfig()),
		flag("authentication-kubeconfig", kubeconfig),
		flag("authorization-kubeconfig", kubeconfig),
		flag("bind-address", loopback),
		flag("secure-port", c.Ports.Scheduler),
		flag("tls-cert-file", pair.CertFile),
		flag("tls-private-key-file", pair.KeyFile),
		flag("feature-gates", featureGates),
	)
}

// OurSchedulerSpec starts our scheduler with its own service account.
func (c *ControlPlane) OurSchedulerSpec() process.Spec {
	pair, kubeconfig := c.serving[OurScheduler], c.OurSchedulerKubeconfig()
	return c.spec(OurScheduler,
		flag("config", c.ourSchedulerConfig()),
		flag("authentication-kubeconfig", kubeconfig),
		flag("authorization-kubeconfig", kubeconfig),
		flag("bind-address", loopback),
		flag("secure-port", c.Ports.OurScheduler),
		flag("tls-cert-file", pair.CertFile),
		flag("tls-private-key-file", pair.KeyFile),
		// As its Deployment has it, and what the other components have.
		flag("feature-gates", featureGates+",NominatedNodeNameForExpectation=false"),
	)
}

// KwokSpec starts the stand-in for all kubelets, with the stages of configFile.
func (c *ControlPlane) KwokSpec(configFile string) process.Spec {
	s := c.spec(Kwok,
		flag("kubeconfig", c.kubeconfigOf(Kwok)),
		flag("config", configFile),
		flag("manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake"),
		flag("node-lease-duration-seconds", c.leaseSeconds()),
		flag("server-address", address(c.Ports.Kwok)),
		// Every renewed lease is a line at the level below.
		flag("v", "WARN"),
	)
	// Without it a configuration in the user's home would be read as well.
	s.Env = []string{"KWOK_WORKDIR=" + filepath.Dir(configFile)}
	return s
}

// ManagerSpec starts this product with its own service account, its replicas'
// lease in a namespace. extra flags are added to the command line.
func (c *ControlPlane) ManagerSpec(namespace string, extra []string) process.Spec {
	return c.spec(Manager, append([]string{
		flag("kubeconfig", c.ManagerKubeconfig()),
		flag("config", c.ManagerConfig()),
		flag("metrics-bind-address", address(c.ManagerMetrics)),
		flag("health-probe-bind-address", address(c.ManagerHealth)),
		flag("api-bind-address", address(c.ManagerAPI)),
		flag("api-cert-dir", c.managerCertDir()),
		flag("debug-scenario", true),
		flag("webhooks", true),
		flag("webhook-bind-address", address(c.ManagerWebhook)),
		flag("webhook-hosts", loopback),
		flag("leader-elect", true),
		flag("leader-election-namespace", namespace),
	}, extra...)...)
}
