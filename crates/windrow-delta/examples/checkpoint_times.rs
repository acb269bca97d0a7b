//! x
use std::time::Instant;
#[tokio::main]
async fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let url = url::Url::from_directory_path(&dir).unwrap();
    for version in [99, 199, 299, 399, 498] {
        let t = Instant::now();
        let table = deltalake_core::open_table_with_version(url.clone(), version).await.unwrap();
        let a = t.elapsed();
        let t = Instant::now();
        deltalake_core::checkpoints::create_checkpoint(&table, None).await.unwrap();
        println!("{version}: load {a:?} checkpoint {:?}", t.elapsed());
    }
}
