// SPDX-License-Identifier: Apache-2.0
// Pool PORT BACKEND-PORT THREADS: a pool of threads takes requests (threads: "virtual" needs Java 21), two calls in turn.
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Pool {
	static void call(String backend, String id, int n) throws Exception {
		HttpURLConnection c = (HttpURLConnection) new URL("http://127.0.0.1:" + backend + "/d/" + id + "/" + n).openConnection();
		try (InputStream in = c.getInputStream()) {
			in.readAllBytes();
		}
	}

	public static void main(String[] args) throws Exception {
		System.setProperty("http.maxConnections", "256");
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 256);
		ExecutorService pool = args[2].equals("virtual")
			? (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null)
			: Executors.newFixedThreadPool(Integer.parseInt(args[2]));
		server.setExecutor(pool);
		server.createContext("/", x -> {
			String id = x.getRequestURI().getPath().split("/")[2];
			try {
				call(args[1], id, 0);
				call(args[1], id, 1);
			} catch (Exception e) {
				throw new RuntimeException(e);
			}
			x.sendResponseHeaders(200, 2);
			x.getResponseBody().write("ok".getBytes());
			x.close();
		});
		server.start();
		System.out.println("ready");
	}
}
