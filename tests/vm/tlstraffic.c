// SPDX-License-Identifier: Apache-2.0
/* An HTTPS server and its client, in two processes: 50 requests on 5 connections, over OpenSSL. Exit 0: all answered. */
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS 5
#define REQUESTS    10

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

static void own_certificate(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				   (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_sign(x, key, EVP_sha256());
	SSL_CTX_use_certificate(ctx, x);
	SSL_CTX_use_PrivateKey(ctx, key);
}

static int serve(int listener)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char buf[4096];

	own_certificate(ctx);
	for (int i = 0; i < CONNECTIONS; i++) {
		SSL *s = SSL_new(ctx);

		SSL_set_fd(s, accept(listener, NULL, NULL));
		if (SSL_accept(s) != 1)
			return 1;
		while (SSL_read(s, buf, sizeof(buf)) > 0)
			SSL_write(s, answer, sizeof(answer) - 1);
		close(SSL_get_fd(s));
		SSL_free(s);
	}
	return 0;
}

static int ask(const struct sockaddr_in *to)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char buf[4096];

	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		SSL *s = SSL_new(ctx);

		if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
			return 2;
		SSL_set_fd(s, fd);
		if (SSL_connect(s) != 1)
			return 3;
		for (int k = 0; k < REQUESTS; k++) {
			int n = snprintf(buf, sizeof(buf),
					 "GET /%d/%d HTTP/1.1\r\nHost: localhost\r\n\r\n", i, k);

			if (SSL_write(s, buf, n) != n ||
			    SSL_read(s, buf, sizeof(buf)) != sizeof(answer) - 1)
				return 4;
		}
		SSL_shutdown(s);
		SSL_free(s);
		close(fd);
	}
	return 0;
}

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), status = 0, rc;
	pid_t server;

	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return 5;
	server = fork();
	if (server == 0)
		return serve(listener);
	sleep(2); /* the tracer looks at new processes, in an emulated machine */
	rc = ask(&at);
	waitpid(server, &status, 0);
	return rc ? rc : WEXITSTATUS(status);
}
