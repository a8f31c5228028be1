package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
)

// clusterName is what kubectl shows as the cluster, and half of the context.
const clusterName = "gpu-sandbox"

// WriteKubeconfig writes a kubeconfig, mode 0600, with a client certificate for
// a user in some groups.
func (a *Authority) WriteKubeconfig(path, server, user string, groups ...string) error {
	cert, key, err := a.Client(user, groups...)
	if err != nil {
		return err
	}
	config := kubeconfigutil.CreateWithCerts(server, clusterName, user, a.CAPEM(), key, cert)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}

// WriteTokenKubeconfig writes a kubeconfig, mode 0600, with a bearer token.
func (a *Authority) WriteTokenKubeconfig(path, server, user, token string) error {
	config := kubeconfigutil.CreateWithToken(server, clusterName, user, a.CAPEM(), token)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}
