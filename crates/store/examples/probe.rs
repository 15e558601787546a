use std::path::{Path,PathBuf};
fn main(){
 let dir=std::env::args().nth(1).unwrap();
 let found=unspool_store::find(&[PathBuf::from(dir)]);
 let files:Vec<(&Path,u64,u64)>=found.sessions.iter().map(|f|(f.path.as_path(),0,f.bytes)).chain(found.agents.iter().map(|f|(f.path.as_path(),0,f.bytes))).collect();
 let all=unspool_store::spent::gather(&files,2);
 let n:usize=all.iter().flatten().map(|g|g.spending.messages.len()).sum();
 let b:usize=all.iter().flatten().map(|g|g.spending.pack().len()).sum();
 println!("{n} {b}");
}
